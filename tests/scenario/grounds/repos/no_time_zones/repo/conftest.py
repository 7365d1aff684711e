import zoneinfo

zoneinfo.reset_tzpath(to=[])
