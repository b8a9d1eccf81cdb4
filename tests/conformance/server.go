// SPDX-License-Identifier: Apache-2.0

// server go-sdk|mcp-go PORT: an MCP server with the official SDK of Go, or with mcp-go.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
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
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func mcpGo() http.Handler {
	s := server.NewMCPServer("server", "1", server.WithInstructions(instructions), server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("message", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("message", "")), nil
		})
	s.AddTool(mcp.NewTool("rows"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructuredOnly(someRows), nil
	})
	s.AddTool(mcp.NewTool("slow"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 13 {
			time.Sleep(200 * time.Millisecond)
			if r.Params.Meta != nil {
				progress := map[string]any{"progress": 1, "progressToken": r.Params.Meta.ProgressToken}
				server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", progress)
			}
		}
		return mcp.NewToolResultText("slept"), nil
	})
	return server.NewStreamableHTTPServer(s)
}

func main() {
	kinds := map[string]func() http.Handler{"go-sdk": official, "mcp-go": mcpGo}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], kinds[os.Args[1]]()))
}
