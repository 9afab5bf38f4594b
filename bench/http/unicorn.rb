# frozen_string_literal: true

worker_processes 2
preload_app true
