# frozen_string_literal: true

# What a file begins with, as its syntax tree tells. Owns: which statements are known before the
# file runs, and what each of them is to do.
#
# A file's first statements, as steps, up to the first one that is not one of these:
#
#   [:require, NAME]  [:relative, PATH]   with a name that stands there
#   [:path, :unshift or :push, [DIRECTORY...]]   into the search path, where names of files say which
#   [:sync, STREAM, VALUE]  [:verbose, VALUE]  [:variable, NAME, VALUE, :always or :unless_set]
#   [:gem_file]  [:command, GEM, EXECUTABLE, VERSIONS]   as commands of RubyGems have them
#
# A literal alone does nothing and is no step. A definition or a constant is another file's to see,
# so that it is none of these.

class Statements
  TREE = defined?(::RubyVM::AbstractSyntaxTree) ? ::RubyVM::AbstractSyntaxTree : nil
  LITERALS = %i[STR LIT NIL TRUE FALSE INTEGER FLOAT SYM].freeze
  CONSTANTS = { NIL: nil, TRUE: true, FALSE: false }.freeze
  PATHS = %i[$LOAD_PATH $:].freeze
  ADDING = { unshift: :unshift, prepend: :unshift, push: :push, append: :push, :<< => :push }.freeze
  STREAMS = { STDOUT: 1, :$stdout => 1, STDERR: 2, :$stderr => 2 }.freeze
  # Options on a script's first line that change nothing of the way in which it runs.
  OPTIONS = /\A(?:-w|-W\S*|--enable[=-]frozen-string-literal)\z/

  # The words of commands that RubyGems writes, by all of its versions. What they do for an argument
  # `_VERSION_` no copy does (`World#asks_for_a_version?`).
  NAMED = /(['"])([\w.-]+)\1, (['"])([\w.-]+)\3, (version|(['"])[^'"]*\6)/
  VERSIONS = Regexp.new(
    '\Aif str str = str\.b\[.{12,20}, 1\] if str and Gem::Version\.correct\?\(str\) version = str ' \
    '(?:ENV\[\'BUNDLER_VERSION\'\] = str )?ARGV\.shift end end\z'
  )
  LOADS = Regexp.new(
    '\A(?:if Gem\.respond_to\?\(:activate_(?:and_load_)?bin_path\) )?' \
    '(?:load Gem\.activate_bin_path|Gem\.activate_and_load_bin_path)' \
    "\\(#{NAMED}\\)(?: else .* end)?\\z"
  )

  # The steps of a script's text; `name` is what it is called by.
  def self.of_script(name, text)
    first = text.lines.first.to_s
    if first.start_with?("#!")
      _, words = first.scrub.match(/ruby\S*(.*)/)&.to_a
      return [] unless words&.split&.all? { |word| word.match?(OPTIONS) }
    end
    new(name, text).steps
  end

  # Those of a file that is required, or loaded.
  def self.of_file(path)
    new(path, File.binread(path)).steps
  rescue SystemCallError
    []
  end

  def initialize(name, text)
    @name = name
    @text = text.dup.force_encoding(Encoding::UTF_8)
    @lines = text.b.lines
    @values = {}
  end

  def steps
    found = []
    statements.each do |node|
      more = steps_of(node) or break
      found.concat(more)
    end
    found
  end

  private

  def statements
    return [] if TREE.nil?

    verbose = $VERBOSE
    $VERBOSE = nil
    parts(TREE.parse(@text).children[2])
  rescue SyntaxError, ArgumentError, EncodingError
    []
  ensure
    $VERBOSE = verbose
  end

  def parts(body)
    return [] unless node?(body)

    body.type == :BLOCK ? body.children : [body]
  end

  def node?(value, *types)
    value.is_a?(TREE::Node) && (types.empty? || types.include?(value.type))
  end

  # The steps of a statement, none where it does nothing; nil where it is not known.
  def steps_of(node)
    return nil unless node?(node)
    return [] if LITERALS.include?(node.type) || node.type == :BEGIN && node.children[0].nil?

    case node.type
    when :FCALL then required(node) || command(node)
    when :CALL, :OPCALL then path(node) || gem_file(node)
    when :ATTRASGN then stream(node) || variable(node)
    when :OP_ASGN1 then node.children[1] == :"||" ? variable_unless_set(node) : nil
    when :GASGN then verbose(node)
    when :LASGN then local(node)
    when :IF then source(node).match?(VERSIONS) ? [] : command(node)
    when :RESCUE then rescued(node)
    end
  end

  # What it is in the text, with one space where there are any.
  def source(node)
    first, last = node.first_lineno - 1, node.last_lineno - 1
    lines = @lines[first..last].map(&:dup)
    lines[-1] = lines[-1].byteslice(0, node.last_column)
    lines[0] = lines[0].byteslice(node.first_column, lines[0].bytesize)
    lines.join.split.join(" ")
  end

  def arguments(list)
    node?(list, :LIST, :ARRAY) ? list.children.compact : []
  end

  def required(node)
    name, list = node.children
    given = arguments(list)
    return nil unless %i[require require_relative].include?(name) && given.size == 1

    text = literal(given[0]) or return nil
    return [[:require, text]] if name == :require

    [[:relative, File.expand_path(text, directory)]]
  rescue SystemCallError
    nil
  end

  # Where the file really lies.
  def directory
    File.dirname(File.realpath(@name))
  end

  def literal(node)
    node.children[0] if node?(node, :STR) && source(node) != "__FILE__"
  end

  # What names a directory of the file's own, or nil.
  def place(node)
    return nil unless node?(node)
    return @name if node.type == :FILE || node.type == :STR && source(node) == "__FILE__"

    case node.type
    when :STR then node.children[0]
    when :VCALL, :FCALL then directory if node.children[0] == :__dir__
    when :DSTR then joined(node)
    when :OPCALL then added(node)
    when :CALL then file_method(node)
    end
  end

  def joined(node)
    first, *rest = node.children
    pieces = rest.flat_map { |part| arguments(part).empty? ? [part] : arguments(part) }
    texts = pieces.map { |part| place(node?(part, :EVSTR) ? part.children[0] : part) }
    texts.none?(&:nil?) ? [first, *texts].compact.join("") : nil
  end

  def added(node)
    receiver, name, list = node.children
    texts = [receiver, *arguments(list)].map { |part| place(part) }
    texts.join("") if name == :+ && texts.none?(&:nil?)
  end

  def file_method(node)
    receiver, name, list = node.children
    return nil unless node?(receiver, :CONST) && receiver.children[0] == :File

    given = arguments(list).map { |part| place(part) }
    return nil if given.empty? || given.any?(&:nil?) || !%i[expand_path join dirname realpath].include?(name)

    File.public_send(name, *given)
  end

  def path(node)
    receiver, name, list = node.children
    return nil unless node?(receiver, :GVAR) && PATHS.include?(receiver.children[0]) && ADDING[name]

    places = arguments(list).map { |part| place(part) }
    [[:path, ADDING[name], places]] if places.any? && places.none?(&:nil?)
  rescue SystemCallError, ArgumentError
    nil
  end

  def gem_file(node)
    [[:gem_file]] if source(node) == "Gem.use_gemdeps"
  end

  def stream(node)
    receiver, name, list = node.children
    value, = arguments(list)
    fd = STREAMS[receiver.children[0]] if node?(receiver, :CONST, :GVAR)
    [[:sync, fd, CONSTANTS[value.type]]] if fd && name == :sync= && node?(value, :TRUE, :FALSE)
  end

  def variable(node)
    receiver, operation, list = node.children
    name, value = arguments(list).map { |part| literal(part) }
    [[:variable, name, value, :always]] if environment?(receiver) && operation == :[]= && name && value
  end

  def variable_unless_set(node)
    receiver, _, list, value = node.children
    name = literal(arguments(list)[0])
    value = place(value)
    [[:variable, name, value, :unless_set]] if environment?(receiver) && name && value
  rescue SystemCallError, ArgumentError
    nil
  end

  def environment?(node)
    node?(node, :CONST) && node.children[0] == :ENV
  end

  def verbose(node)
    name, value = node.children
    [[:verbose, CONSTANTS[value.type]]] if name == :$VERBOSE && node?(value, *CONSTANTS.keys)
  end

  # Seen by this file alone.
  def local(node)
    name, value = node.children
    return nil unless node?(value, *LITERALS) || source(node) == "str = ARGV.first"

    @values[name] = literal(value)
    []
  end

  def command(node)
    _, _, name, _, executable, versions = source(node).match(LOADS).to_a
    return nil if name.nil?

    versions = versions == "version" ? @values[:version] : versions[1..-2]
    [[:command, name, executable, versions]] if versions
  end

  # Where nothing is raised, those who would rescue it do nothing.
  def rescued(node)
    steps = parts(node.children[0]).map { |part| steps_of(part) }
    steps.flatten(1) if node.children[2].nil? && steps.none?(&:nil?)
  end
end
