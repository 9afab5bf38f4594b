# frozen_string_literal: true

# One Rack app for two mounts of `hob.toml`: the same file, once with a fresh copy for each request, once
# with workers that go on. Its page shows which it is: the worker's own count begins anew in each copy,
# the total is that of all copies of both mounts. It needs the gem rack and nothing else.

# A number that all processes share: a file under a lock, in a directory that this example owns.
class Total
  def initialize(path)
    @path = path
  end

  def get
    locked { |file| file.read.to_i }
  end

  def inc
    locked do |file|
      count = file.read.to_i + 1
      file.rewind
      file.write(count)
      file.flush
      count
    end
  end

  private

  def locked
    File.open(@path, File::RDWR | File::CREAT, 0o644) do |file|
      file.flock(File::LOCK_EX)
      yield file
    end
  end
end

total_requests = Total.new(File.join(__dir__, "state", "total_requests"))
own_requests = 0

page = lambda do |prefix, own, total|
  <<~HTML
    <!doctype html>
    <title>Fool's gold</title>
    <link rel="stylesheet" href="/gold.css">
    <h1>Fool's gold</h1>
    <p><img src="/gold.svg" alt="A nugget" width="96" height="96"></p>
    <dl>
      <dt>mount</dt><dd>#{Rack::Utils.escape_html(prefix)}</dd>
      <dt>process</dt><dd>#{Process.pid}</dd>
      <dt>requests of this worker</dt><dd>#{own}</dd>
      <dt>total requests</dt><dd>#{total}</dd>
    </dl>
    <p><a href="/">both mounts</a></p>
  HTML
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "", "/"
    own_requests += 1
    html = page.call(env["SCRIPT_NAME"], own_requests, total_requests.inc)
    [200, { "content-type" => "text/html; charset=utf-8", "cache-control" => "no-store" }, [html]]
  when "/total"
    [200, { "content-type" => "text/plain" }, ["#{total_requests.get}\n"]]
  else
    [404, { "content-type" => "text/plain" }, ["There is no such page.\n"]]
  end
end)
