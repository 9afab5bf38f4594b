# frozen_string_literal: true

# The plain way to shared-nothing: one process that has loaded the app, and a fork for each request.
# Usage: forking.rb CONFIG PORT
require "rack"
require "socket"
require "stringio"

app, = Rack::Builder.parse_file(ARGV[0])
server = TCPServer.new("127.0.0.1", ARGV[1].to_i)
trap("TERM") { exit! }

def env_of(line, head)
  method, target, = line.split(" ")
  path, query = target.split("?", 2)
  {
    "REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => query.to_s,
    "SERVER_NAME" => "localhost", "SERVER_PORT" => "80", "SERVER_PROTOCOL" => "HTTP/1.1",
    "rack.input" => StringIO.new, "rack.errors" => $stderr, "rack.url_scheme" => "http"
  }.merge(head.to_h { |pair| ["HTTP_#{pair[0].upcase.tr("-", "_")}", pair[1]] })
end

loop do
  socket = server.accept
  Process.detach(fork do
    line = socket.gets
    head = []
    while (text = socket.gets.chomp) != ""
      head << text.split(": ", 2)
    end
    status, headers, body = app.call(env_of(line, head))
    socket.write("HTTP/1.1 #{status} OK\r\nconnection: close\r\n",
                 headers.map { |name, value| "#{name}: #{value}\r\n" }.join, "\r\n")
    body.each { |part| socket.write(part) }
    exit!
  end)
  socket.close
end
