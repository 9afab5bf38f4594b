# frozen_string_literal: true

# The app that all servers of Rack are measured with: a small page from a template, and a count that
# shows whether the process is a fresh one.
require "erb"

PAGE = ERB.new(<<~HTML)
  <!doctype html>
  <title>bench</title>
  <p>request <%= count %> of this process</p>
  <ul><% 20.times do |row| %><li>row <%= row %></li><% end %></ul>
HTML
count = 0

run(lambda do |_env|
  count += 1
  html = PAGE.result_with_hash(count: count)
  [200, { "content-type" => "text/html", "content-length" => html.bytesize.to_s }, [html]]
end)
