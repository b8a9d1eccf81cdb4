from .prices import calc, recalculate

__all__ = ["calc", "recalculate"]
