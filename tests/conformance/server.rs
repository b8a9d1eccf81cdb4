// SPDX-License-Identifier: Apache-2.0

//! server PORT: an MCP server with rmcp 0.8.

use std::{process, sync::Arc};

use rmcp::{
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{ServerCapabilities, ServerInfo},
    schemars, tool, tool_handler, tool_router,
    transport::streamable_http_server::{session::local::LocalSessionManager, StreamableHttpService},
    ServerHandler,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    message: String,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    #[tool(description = "Says it again.")]
    async fn echo(&self, Parameters(words): Parameters<Words>) -> String {
        words.message
    }

    #[tool(description = "Ends the server.")]
    async fn end(&self) -> String {
        process::exit(0)
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        ServerInfo {
            instructions: Some("Call echo.".into()),
            capabilities: ServerCapabilities::builder().enable_tools().build(),
            ..Default::default()
        }
    }
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).unwrap();
    let make = || Ok(Server { tool_router: Server::tool_router() });
    let service = StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), Default::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.unwrap();
}
