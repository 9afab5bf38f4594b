# hob run main.rb NAME...
require_relative "core"

puts greeting(ARGV)
