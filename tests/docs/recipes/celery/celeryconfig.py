# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Broker and results are folders: the worker forks as in production, and needs no broker."""

from pathlib import Path

for _name in ("queue", "out", "control", "results"):
    Path(_name).mkdir(exist_ok=True)

broker_url = "filesystem://"
broker_transport_options = {
    "data_folder_in": "queue",
    "data_folder_out": "out",
    "control_folder": "control",
    "polling_interval": 0.1,
}
result_backend = f"file://{Path.cwd()}/results"
