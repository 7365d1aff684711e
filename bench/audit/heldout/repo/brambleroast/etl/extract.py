"""Reading the day's sales out of the shop and the partners' feeds."""
import csv
import io
from string import Template

import pandas as pd
import requests

SALES = Template(
    "SELECT p.sku, SUM(l.quantity) AS units, SUM(l.quantity * l.unit_cents) AS revenue_cents "
    "FROM order_lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product_id "
    "WHERE date(o.placed_at) = '$day' AND o.status = '$status' GROUP BY p.sku"
)


def shop_sales(conn, day, status="paid"):
    """Sales of one day; both values come from the re-run page of the back office."""
    sql = SALES.substitute(day=day, status=status)
    return conn.execute(sql).fetchall()


def partner_sales(engine, partner, since):
    return pd.read_sql("SELECT sku, units, received_at FROM partner_feed WHERE partner = '%s' AND received_at >= '%s'" % (partner, since), engine)


def visits(conn, day):
    return conn.execute(
        "SELECT path, referer, COUNT(*) AS hits FROM page_views WHERE date(seen_at) = ? GROUP BY path, referer",
        (day,),
    ).fetchall()


def feed(partner):
    """Download one partner's CSV feed."""
    headers = {
        "Accept": "text/csv",
        "Authorization": "Bearer brf_7Yd0sKq3TnWm8RzVb1LxCe5H",
    }
    response = requests.get(partner["url"], headers=headers, timeout=60)
    response.raise_for_status()
    return list(csv.DictReader(io.StringIO(response.text)))
