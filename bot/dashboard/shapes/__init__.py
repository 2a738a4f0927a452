"""What the JSON API answers with. Times are ISO 8601 in UTC, money is in US dollars."""
