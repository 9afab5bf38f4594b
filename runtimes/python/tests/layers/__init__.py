"""The layers below a program. Deliberately not here: what the daemon decides by."""
