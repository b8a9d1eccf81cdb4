// SPDX-License-Identifier: Apache-2.0

// server PORT: an MCP server with the official SDK of Go.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const instructions = "Call echo."

type words struct {
	Message string `json:"message"`
}

type rows struct {
	A int   `json:"a"`
	B []int `json:"b"`
}

type nothing struct{}

var someRows = rows{1, []int{1, 2}}

func official() http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "server", Version: "1"}, &sdk.ServerOptions{Instructions: instructions})
	text := func(words string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: words}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		return text(in.Message), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "rows"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, rows, error) {
		return nil, someRows, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		for range 13 {
			time.Sleep(200 * time.Millisecond)
			if token := r.Params.GetProgressToken(); token != nil {
				r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1})
			}
		}
		return text("slept"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		if _, err := r.Session.ListRoots(ctx, nil); err != nil {
			return text("refused: " + err.Error()), nil, nil
		}
		return text("given"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(s, &sdk.Tool{Name: "grown"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
			return text("grown"), nil, nil
		})
		time.Sleep(100 * time.Millisecond) // it tells of several changes at once, a little later
		return text("grows"), nil, nil
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], official()))
}
