"""Models that the last chapters build and read, made of the attention of this book."""

from d2lmini._lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    __file__,
    torch=[
        "InductionModel", "LanguageModel", "NameModel", "TransformerBlock", "Translation",
        "Translator", "Vocabulary", "phrases", "progress", "repeated_letters", "sentence", "train",
        "train_induction", "train_language_model", "train_names", "train_translator",
    ],
)  # fmt: skip
del attach
