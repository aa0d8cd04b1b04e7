"""Trains the demo's digits classifier and writes it as two ``.tflite`` files, with its test split.

    pip install tensorflow-cpu scikit-learn
    python docs/demo/train_digits.py

Written beside this file, in ``models/``:

- ``digits_float.tflite``: float32 throughout;
- ``digits_int8.tflite``: the same network with int8 weights, activations, input and output;
- ``digits_test.npz``: the images that training never saw, and their labels.

The images are the 1,797 handwritten digits that scikit-learn bundles, 8 x 8 pixels of 0 to 16:
E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning
Repository, 1998, https://doi.org/10.24432/C50P49, licence CC BY 4.0. They are only scaled here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

MODELS = Path(__file__).parent / "models"
SEED = 20
EPOCHS = 60

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


def main() -> None:
    """Train and convert the digits classifier, measure its accuracy, and write the files."""
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    train_images, test_images, train_labels, test_labels = load_split()
    trained = build_network(batch_size=None)
    train(trained, train_images, train_labels)
    network = build_network(batch_size=1)
    network.set_weights(trained.get_weights())

    MODELS.mkdir(exist_ok=True)
    np.savez_compressed(
        MODELS / "digits_test.npz",
        images=np.round(test_images[..., 0] * 16).astype(np.uint8),
        labels=test_labels.astype(np.uint8),
    )
    np.savez_compressed(  # the same as rows for `delegraph evaluate`: arrays named as inputs
        MODELS / "digits_rows.npz", image=test_images, label=test_labels.astype(np.uint8)
    )
    for name, calibration in (("digits_float", None), ("digits_int8", train_images[:300])):
        model = convert(network, calibration)
        (MODELS / f"{name}.tflite").write_bytes(model)
        accuracy = official_accuracy(model, test_images, test_labels)
        print(f"{name}: {len(model):,} bytes, {accuracy:.2%} of {len(test_labels)} images")


def load_split() -> tuple[Images, Images, Labels, Labels]:
    """Return training images, test images (``[N, 8, 8, 1], float32, 0..1``) and their labels."""
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, digits.target, test_size=360, stratify=digits.target, random_state=SEED
    )
    return train_images, test_images, train_labels, test_labels


def build_network(batch_size: int | None) -> Any:
    """Return the untrained Keras model: three residual blocks whose sums stay linear.

    No activation follows an addition (as in MobileNetV2), so each stays a plain ADD after
    conversion.
    """
    layers = tf.keras.layers
    image = layers.Input((8, 8, 1), batch_size=batch_size, name="image")
    x = layers.Conv2D(16, 3, padding="same", activation="relu", name="stem")(image)
    x = residual_block(x, 16, "block1")
    x = layers.MaxPooling2D(name="pool")(x)
    x = layers.Conv2D(32, 1, activation="relu", name="widen")(x)
    x = residual_block(x, 32, "block2")
    x = residual_block(x, 32, "block3")
    x = layers.GlobalAveragePooling2D(name="average")(x)
    digit = layers.Dense(10, activation="softmax", name="digit")(x)
    return tf.keras.Model(image, digit, name="digits")


def residual_block(x: Any, channels: int, name: str) -> Any:
    """Return ``x + conv(relu(conv(x)))``."""
    layers = tf.keras.layers
    y = layers.Conv2D(channels, 3, padding="same", activation="relu", name=f"{name}_expand")(x)
    y = layers.Conv2D(channels, 3, padding="same", name=f"{name}_project")(y)
    return layers.Add(name=f"{name}_sum")([x, y])


def train(network: Any, images: Images, labels: Labels) -> None:
    """Fit *network* on images shifted by up to one pixel and turned by up to 10 degrees."""
    augment = tf.keras.Sequential(
        [
            tf.keras.layers.RandomTranslation(1 / 8, 1 / 8, fill_mode="constant", seed=SEED),
            tf.keras.layers.RandomRotation(10 / 360, fill_mode="constant", seed=SEED),
        ]
    )
    batches = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(len(images), seed=SEED)
        .batch(32)
        .map(lambda x, y: (augment(x, training=True), y))
    )
    steps = EPOCHS * len(batches)
    network.compile(
        optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    network.fit(batches, epochs=EPOCHS, verbose=0)


def convert(network: Any, calibration: Images | None) -> bytes:
    """Return *network* as a ``.tflite`` file; full-integer int8 when given calibration images."""
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if calibration is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([image[np.newaxis]] for image in calibration)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return rename_ends(converter.convert())


def rename_ends(content: bytes) -> bytes:
    """Return the model with its input named ``image`` and its output ``digit``."""
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    graph = model.subgraphs[0]
    graph.tensors[graph.inputs[0]].name = "image"
    graph.tensors[graph.outputs[0]].name = "digit"
    model.signatureDefs[0].inputs[0].name = "image"
    model.signatureDefs[0].outputs[0].name = "digit"
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def official_accuracy(content: bytes, images: Images, labels: Labels) -> float:
    """Return the share of *images* that TensorFlow's own interpreter classifies rightly."""
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    sink = interpreter.get_output_details()[0]
    right = 0
    for image, label in zip(images, labels, strict=True):
        scale, zero_point = source["quantization"]
        values = image if scale == 0 else np.round(image / scale) + zero_point
        interpreter.set_tensor(source["index"], values[np.newaxis].astype(source["dtype"]))
        interpreter.invoke()
        right += int(interpreter.get_tensor(sink["index"]).argmax() == label)
    return right / len(labels)


if __name__ == "__main__":
    main()
