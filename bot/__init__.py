"""What GitHub and people talk to: webhooks, commands, permissions, GitHub calls, publishing, dashboard, CLI."""
