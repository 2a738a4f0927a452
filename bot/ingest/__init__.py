"""How webhooks get into the inbox: durable before they are acknowledged, many by one sync of the disk."""
