"""A support agent of a small shop: it chooses a tool, calls it, and answers with the result.

Rules choose the tools, which are plain functions; the words come from a small local model.
"""

import re

import pennyweight

MODEL = "local/smollm2-135m"
ORDERS = {
    "A-1042": {"item": "red kettle", "status": "sent on Monday", "total": 39.90},
    "A-1043": {"item": "teapot", "status": "delivered", "total": 24.50},
    "A-1044": {"item": "copper kettle", "status": "waiting for payment", "total": 89.00},
}
ARTICLES = {
    "return": "Goods can be returned within 30 days, with the receipt.",
    "shipping": "Shipping takes 3 to 5 days and costs 4.90.",
    "repair": "A kettle is repaired free of charge for 2 years.",
    "open": "The shop is open from 9 to 18, Monday to Saturday.",
}


def lookup_order(order_id: str) -> str:
    """Find an order."""
    order = ORDERS.get(order_id)
    if order is None:
        return f"There is no order {order_id}."
    return f"Order {order_id}, a {order['item']} for {order['total']:.2f}, is {order['status']}."


def find_article(topic: str) -> str:
    """Find an article of the help pages."""
    return ARTICLES[topic]


def refund_order(order_id: str) -> str:
    """Refund an order, if it was delivered."""
    order = ORDERS.get(order_id)
    if order is None or order["status"] != "delivered":
        return f"Order {order_id} cannot be refunded."
    return f"A refund of {order['total']:.2f} for order {order_id} is on its way."


WANTS = (
    ("refund_order", re.compile(r"money back|refund|pay it (back|out)", re.I)),
    ("lookup_order", re.compile(r"\border\b|\borders\b|\b[A-Z]-[0-9]{4}\b", re.I)),
    ("find_article", re.compile("|".join(ARTICLES), re.I)),
)
ORDER = re.compile(r"\b[A-Z]-[0-9]{4}\b")


async def answer(request):
    """Answer a customer; return the text and the tool calls as a dict."""
    asked = request.text
    tool = next((tool for tool, wanted in WANTS if wanted.search(asked)), None)
    calls, found = use(tool, asked)
    orders = [m.content for m in request.messages if m.role == "system"]
    turns = [
        {"role": "system", "content": "\n".join([*orders, f"The shop's system says: {found}"])},
        {"role": "user", "content": asked},
    ]
    seed = request.settings.seed
    said = await pennyweight.ask(MODEL, turns, temperature=0, max_tokens=40, seed=seed)
    return {**said, "tool_calls": calls, "model": MODEL}


def use(tool, asked):
    """Call a tool for a question; return the call and its result."""
    order = ORDER.search(asked)
    if tool in {"lookup_order", "refund_order"}:
        if not order:
            return [], "No order number was given. Ask for it."
        arguments = {"order_id": order[0]}
        result = (lookup_order if tool == "lookup_order" else refund_order)(**arguments)
    elif tool == "find_article":
        topic = next(t for t in ARTICLES if t in asked.lower())
        arguments, result = {"topic": topic}, find_article(topic)
    else:
        return [], "Nothing."
    return [{"name": tool, "arguments": arguments}], result
