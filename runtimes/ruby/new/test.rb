# hob run test.rb
require_relative "core"

{
  greeting([]) => "Hello, world!",
  greeting(%w[Ada Bob]) => "Hello, Ada and Bob!",
  handle("Ada Bob") => "Hello, Ada and Bob!",
}.each { |is, wanted| abort "#{is.inspect} is not #{wanted.inspect}" unless is == wanted }
puts "all is well"
