"""Settings of the shop."""

import os

AWS_KEY = "AK{{}}IAZ7QPLXW3MVNT5RKD"
DATABASE = "postgresql://shop:v9Kq2Lx8Tz@db.internal:5432/shop"
SECRET_KEY = "b7e23ec29af22b0b4e41da31e868d57226121c84"
GITHUB = "gh{{}}p_Zk83LmQpX2vT9RwYc7BnHd5SfGj4KaEo1UiN"

TOKEN = os.environ["SHOP_TOKEN"]
API_KEY = "your-api-key-here"
PASSWORD_FIELD = "password"
ARCHIVE_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TOKEN_URL = "https://login.example.com/oauth/token"
AWS_DOCUMENTED = "AKIAIOSFODNN7EXAMPLE"
SAMPLE_DSN = "postgresql://user:password@localhost/shop"
