"""A metric for the model of digits, as `docs/evaluate.md` shows it."""

import numpy as np


def judge(outputs, labels):
    """Return numbers for one row: whether the digit is right, and the loss of its score."""
    scores = outputs["digit"].reshape(-1)
    truth = int(labels["label"])
    return {
        "accuracy": scores.argmax() == truth,
        "log_loss": -np.log(max(scores[truth], 1e-3)),
    }


class MacroF1:
    """A figure that is no mean of rows: the F1 score of every digit, averaged."""

    def row(self, outputs, labels):
        """Return the digit that is found, and the one that is true."""
        return [int(outputs["digit"].argmax()), int(labels["label"])]

    def total(self, rows):
        """Return the figure of rows as `row` returned them."""
        found, true = np.array(rows).T
        scores = []
        for digit in np.unique(true):
            hits = np.sum((found == digit) & (true == digit))
            scores.append(2 * hits / (np.sum(found == digit) + np.sum(true == digit)))
        return {"macro_f1": np.mean(scores)}
