// SPDX-License-Identifier: Apache-2.0

//! server PORT: an MCP server with rmcp 0.8.

use std::{mem, sync::Arc};

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
    sessions: Arc<LocalSessionManager>,
}

#[tool_router]
impl Server {
    #[tool(description = "Says it again.")]
    async fn echo(&self, Parameters(words): Parameters<Words>) -> String {
        words.message
    }

    /// As one that starts again has lost them; what belongs to them stays, so that this call is answered.
    #[tool(description = "Forgets all sessions.")]
    async fn forget(&self) -> String {
        mem::forget(mem::take(&mut *self.sessions.sessions.write().await));
        "forgotten".into()
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
    let sessions = Arc::new(LocalSessionManager::default());
    let known = sessions.clone();
    let make = move || Ok(Server { tool_router: Server::tool_router(), sessions: known.clone() });
    let service = StreamableHttpService::new(make, sessions, Default::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.unwrap();
}
