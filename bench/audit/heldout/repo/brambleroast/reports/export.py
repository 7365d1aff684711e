"""Exports from the warehouse through SQLAlchemy."""
import csv
import logging

from sqlalchemy import create_engine, text

from brambleroast.etl import settings

log = logging.getLogger(__name__)


def engine():
    return create_engine(settings.STAGING_URL, pool_pre_ping=True)


def by_channel(session, channel, since):
    statement = text(
        "SELECT day, sku, units, revenue_cents FROM fact_sales "
        "WHERE channel = :channel AND day >= :since ORDER BY day"
    )
    return session.execute(statement, {"channel": channel, "since": since}).all()


def by_sku(session, pattern):
    """Sales of all articles whose number starts with what was typed."""
    return session.execute(text(f"SELECT day, sku, units FROM fact_sales WHERE sku LIKE '{pattern}%' ORDER BY day")).all()


def top(session, count):
    limit = max(1, min(int(count), 500))
    return session.execute(
        text(f"SELECT sku, SUM(units) AS units FROM fact_sales GROUP BY sku ORDER BY units DESC LIMIT {limit}")
    ).all()


def write_csv(rows, path, source):
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        for row in rows:
            writer.writerow(row)
    log.info("export finished: %d rows selected from %s", len(rows), source)
