def test_mail(mocker):
    assert mocker.patch("smtplib.SMTP")
