# SPDX-License-Identifier: Apache-2.0
"""Prints which jobs below a directory the outside broke, as 3,17,20: no result, cancelled, killed, an endpoint gone.

    python3 again.py jobs        # jobs/N/job.json and jobs/N/result.json
"""
import sys

from cynode_sba.collect import results_below, row_of

print(",".join(path.parent.name for path in results_below(sys.argv[1:]) if row_of(path)["blame"] == "outside"))
