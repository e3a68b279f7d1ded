//! Socket.IO as clients see it: real connections, by polling and by WebSocket.

mod anonymous;
mod closing;
mod connecting;
mod fixture;
mod poller;
mod polling;
mod recording_backend;
mod rooms;
mod slow;
mod websocket;
