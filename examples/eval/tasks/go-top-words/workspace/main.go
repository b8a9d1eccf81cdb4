package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	counts := map[string]int{}
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Split(bufio.ScanWords)
	for scanner.Scan() {
		counts[scanner.Text()]++
	}
	for word, count := range counts {
		fmt.Println(count, word)
	}
}
