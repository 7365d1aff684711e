"""A language that Redstart does not support: a runner that writes JUnit XML is enough."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from support.server import ScriptedServer, Wire

CODE = "package Price;\nsub total { my ($price, $count) = @_; return $price + $count; }\n1;\n"
SUITE = r"""
use lib 'lib';
use Price;
my @cases = (['three apples', Price::total(2, 3), 6], ['no apples', Price::total(0, 0), 0]);
my $red = 0;
open(my $out, '>', 'report.xml') or die;
print $out '<testsuites><testsuite name="price">';
for my $case (@cases) {
  my ($name, $got, $wanted) = @$case;
  print $out "<testcase classname=\"price\" name=\"$name\">";
  if ($got != $wanted) { $red++; print $out "<failure message=\"expected $wanted, got $got\"/>"; }
  print $out '</testcase>';
}
print $out '</testsuite></testsuites>';
close($out);
exit($red ? 1 : 0);
"""
RIGHT = "return $price * $count;"


@pytest.mark.skipif(shutil.which("perl") is None, reason="there is no perl here")
def test_perl_suite_ends_unproven(user, tmp_path):
    repo = tmp_path / "shop"
    for name, text in {"lib/Price.pm": CODE, "t/all.pl": SUITE}.items():
        (repo / name).parent.mkdir(parents=True)
        (repo / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    line = CODE.splitlines()[1]
    fixed = line.replace("return $price + $count;", RIGHT)
    answer = f"WHY: a total is a product\n\nlib/Price.pm\n<<<<<<< SEARCH\n{line}\n=======\n{fixed}\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: answer) as server:
        user.uses(server, Wire.openai)
        options = ("--test-cmd", "perl t/all.pl", "--junit", "report.xml")
        result = user.redstart("fix", repo, *options, "--json", "--patch", tmp_path / "fix.patch")
        assert "expected 6, got 5" in server.requests[0].text
    assert result.code == 8, result.out + result.err
    assert result.ending["result"] == "unproven"
    assert RIGHT in (tmp_path / "fix.patch").read_text()
