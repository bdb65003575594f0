# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors

fences = []
then = []  # what else happens while the report is written


async def write_report(fence: int) -> None:
    for action in then:
        await action()
    fences.append(fence)
