"""A metric for the model of digits, as `docs/evaluate.md` shows it."""

import numpy as np


def judge(outputs, labels):
    """Return two metrics of one row: whether the digit is right, and the loss of its score."""
    scores = outputs["digit"].reshape(-1)
    truth = int(labels["label"])
    return {
        "accuracy": scores.argmax() == truth,
        "log_loss": -np.log(max(scores[truth], 1e-3)),
    }


class MacroF1:
    """Macro-averaged F1 score: a metric of all rows together, not a mean over rows."""

    def row(self, outputs, labels):
        """Return the predicted digit and the true digit of a row."""
        return [int(outputs["digit"].argmax()), int(labels["label"])]

    def total(self, rows):
        """Return the F1 score of all rows that `row` returned."""
        found, true = np.array(rows).T
        scores = []
        for digit in np.unique(true):
            hits = np.sum((found == digit) & (true == digit))
            scores.append(2 * hits / (np.sum(found == digit) + np.sum(true == digit)))
        return {"macro_f1": np.mean(scores)}
