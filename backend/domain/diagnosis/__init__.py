"""What a program's log says of why it does not serve: rules as data, and their asking. Pure."""
