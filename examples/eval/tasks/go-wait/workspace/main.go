package main

import (
	"fmt"
	"os"
	"time"
)

func length(word string) int {
	time.Sleep(time.Millisecond) // as if it asked a server
	return len([]rune(word))
}

func lengths(words []string) map[string]int {
	result := map[string]int{}
	for _, word := range words {
		go func() {
			result[word] = length(word)
		}()
	}
	return result
}

func main() {
	fmt.Println(lengths(os.Args[1:]))
}
