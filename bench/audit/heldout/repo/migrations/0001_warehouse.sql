CREATE TABLE fact_sales (
    day            DATE    NOT NULL,
    sku            TEXT    NOT NULL,
    channel        TEXT    NOT NULL,
    units          INTEGER NOT NULL,
    revenue_cents  BIGINT  NOT NULL,
    PRIMARY KEY (day, sku, channel)
);

CREATE TABLE load_runs (
    run_id       SERIAL PRIMARY KEY,
    source       TEXT NOT NULL,
    started_at   TIMESTAMP NOT NULL,
    finished_at  TIMESTAMP,
    row_count    INTEGER
);

CREATE TABLE partner_feed (
    partner      TEXT NOT NULL,
    sku          TEXT NOT NULL,
    units        INTEGER NOT NULL,
    received_at  TIMESTAMP NOT NULL
);
