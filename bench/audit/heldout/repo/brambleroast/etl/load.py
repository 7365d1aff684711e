"""Writing into the warehouse (PostgreSQL through psycopg)."""
import logging

from psycopg import sql

log = logging.getLogger(__name__)

FACT_TABLE = "fact_sales"
FACT_COLUMNS = ("day", "sku", "channel", "units", "revenue_cents")

CLOSE_RUN = "UPDATE load_runs SET finished_at = now(), row_count = {rows} WHERE source = '{source}' AND finished_at IS NULL"


def start_run(cur, source):
    cur.execute("INSERT INTO load_runs (source, started_at) VALUES (%s, now())", (source,))


def finish_run(cur, source, rows):
    """`source` is the feed's name as the partner sent it."""
    cur.execute(CLOSE_RUN.format(rows=rows, source=source))


def insert_facts(cur, facts):
    statement = "INSERT INTO {} ({}) VALUES ({})".format(
        FACT_TABLE, ", ".join(FACT_COLUMNS), ", ".join(["%s"] * len(FACT_COLUMNS))
    )
    cur.executemany(statement, [[fact[name] for name in FACT_COLUMNS] for fact in facts])
    log.info("%d facts written", len(facts))


def truncate(cur, table):
    cur.execute(sql.SQL("TRUNCATE TABLE {}").format(sql.Identifier(table)))


def last_runs(cur, source, limit=5):
    cur.execute(
        "SELECT run_id, started_at, finised_at, row_count FROM load_runs "
        "WHERE source = %s ORDER BY started_at DESC LIMIT %s",
        (source, limit),
    )
    return cur.fetchall()
