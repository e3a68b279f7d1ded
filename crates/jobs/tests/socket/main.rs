//! Socket.IO as clients see it: real connections, by polling and by WebSocket.

mod closing;
mod connecting;
mod door;
mod ground;
mod poller;
mod polling;
mod rooms;
mod slow;
mod websocket;
