#!/bin/sh
awk '$5 >= 500 { count[$2]++ } END { for (client in count) print client, count[client] }' /app/server.log |
    sort -k 2 -rn | head -n 1 >/app/answer.txt
