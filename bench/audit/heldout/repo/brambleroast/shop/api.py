"""HTTP endpoints of the shop."""
import hashlib
import os

from flask import Blueprint, Flask, abort, jsonify, request

from brambleroast import db
from brambleroast.auth import tokens
from brambleroast.shop import catalog, orders, reviews, stock

api = Blueprint("api", __name__, url_prefix="/api")

TOKEN_HEADER = "X-Bramble-Token"


def create_app():
    app = Flask("brambleroast")
    app.config["SESSION_COOKIE_SECURE"] = True
    app.config["SECRET_KEY"] = os.environ["BRAMBLE_SECRET_KEY"]
    app.register_blueprint(api)
    return app


@api.get("/products")
def products():
    with db.connection() as conn:
        if "origin" in request.args:
            rows = catalog.by_origin(conn, request.args["origin"])
        elif "q" in request.args:
            rows = catalog.search(conn, request.args["q"])
        else:
            rows = catalog.listing(conn, request.args.get("sort", "title"))
    response = jsonify([dict(row) for row in rows])
    tag = hashlib.md5(response.get_data(), usedforsecurity=False).hexdigest()
    response.set_etag(tag)
    return response.make_conditional(request)


@api.get("/products/<int:product_id>/reviews")
def product_reviews(product_id):
    with db.connection() as conn:
        rows = reviews.for_product(conn, product_id, request.args.get("sort", "newest"))
    return jsonify([dict(row) for row in rows])


@api.get("/orders")
def order_list():
    try:
        tokens.verify(request.headers.get(TOKEN_HEADER, "").encode())
    except tokens.BadToken:
        abort(401)
    with db.connection() as conn:
        rows = orders.back_office_filter(conn, request.args.get("status"), request.args.get("city"))
    return jsonify([dict(row) for row in rows])


@api.get("/stock")
def stock_levels():
    with db.connection() as conn:
        return jsonify(stock.levels(conn, request.args.getlist("sku")))


@api.get("/size-picker")
def size_picker():
    brand = request.args.get("brand", "")
    return jsonify(label=f"Select a size from {brand}, where available, or order by phone")
