import logging

# matplotlib says with warnings that it cannot write to a user's home; it draws all the same.
_log = logging.getLogger("matplotlib")
if _log.level == logging.NOTSET:
    _log.setLevel(logging.ERROR)
