#!/bin/sh
set -e
./build | tail -n 1 >build.log
echo deployed
