(ns PROJECT.core
  (:require [clojure.string :as string]))

(defn greeting [names]
  (str "Hello, " (if (seq names) (string/join " and " names) "world") "!"))

(defn -main [& args]
  (println (greeting args)))
