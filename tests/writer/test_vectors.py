"""A vector on its way to the database."""

import numpy as np

from writer.vectors import as_text


def test_a_vector_as_text_has_the_same_numbers():
    vector = np.array([0.1, -1 / 3, 1e-7, 1.5e-30, 0.0, -0.0, 1.0], dtype=np.float32)
    rows = np.stack([vector, -vector], axis=1)
    for each in (vector, rows[:, 0], vector.astype(np.float64)):
        text = as_text(each)
        assert (text[0], text[-1]) == ("{", "}")
        numbers = np.array([float(number) for number in text[1:-1].split(",")], dtype=np.float32)
        assert numbers.tobytes() == vector.tobytes()
