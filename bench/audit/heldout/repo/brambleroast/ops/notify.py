"""Mails and messages to customers and staff."""
import os
import smtplib
import ssl
from email.message import EmailMessage

import requests

SENDER = "shop@brambleroast.example"
REFUNDS_URL = "https://payments.bramble.internal/refunds"


def smtp_login():
    user = os.environ.get("SMTP_USER", "mailer")
    password = os.environ.get("SMTP_PASSWORD", "w9!Fennel_Quarry3")
    return user, password


def mail(to, subject, body):
    message = EmailMessage()
    message["From"] = SENDER
    message["To"] = to
    message["Subject"] = subject
    message.set_content(body)
    with smtplib.SMTP(os.environ.get("SMTP_HOST", "localhost"), 587) as server:
        server.starttls(context=ssl.create_default_context())
        server.login(*smtp_login())
        server.send_message(message)


def refund(order_id, cents):
    """Ask the payment service to pay an order back."""
    payload = {"order": order_id, "cents": cents}
    headers = {"X-Api-Key": os.environ["PAYMENTS_API_KEY"]}
    response = requests.post(REFUNDS_URL, json=payload, headers=headers, timeout=20, verify=False)
    response.raise_for_status()
    return response.json()["id"]


def chat(text):
    url = os.environ.get("CHAT_WEBHOOK_URL", "")
    if url:
        requests.post(url, json={"text": text}, timeout=10)
