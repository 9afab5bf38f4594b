# frozen_string_literal: true

# Sinatra: url, redirects, a signed session, a form, an upload, a streamed page.
require "sinatra/base"

class Site < Sinatra::Base
  set :environment, :production
  set :sessions, true
  set :session_secret, "a test's" * 8
  set :protection, except: :host_authorization
  set :show_exceptions, false

  get("/") { url("/page/x", false) }
  get("/page/:name") { "page #{params[:name]}" }
  get("/go") { redirect(to("/page/there")) }
  get("/slash/?") { "with a slash" }
  get("/count") { (session[:count] = session.fetch(:count, 0) + 1).to_s }
  post("/form") { "#{params[:name]} #{params[:file][:filename]} #{params[:file][:tempfile].size}" }
  get("/stream") { stream { |out| 3.times { |n| out << "part #{n}\n" } } }
  get("/raise") { raise "as asked" }
end

run Site
