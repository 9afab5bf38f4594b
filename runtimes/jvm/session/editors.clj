;; What editors ask of a session beside evals: names that begin so, and what a name means.
(ns hob.editors
  (:require [clojure.string :as string]))

(set! *warn-on-reflection* true)

(defn- kind [v]
  (cond (not (var? v)) "class"
        (:macro (meta v)) "macro"
        (:arglists (meta v)) "function"
        :else "var"))

(defn candidates [asked prefix]
  (let [[_ scope part] (re-matches #"([^/]+)/(.*)" prefix)
        from (when scope
               (or (get (ns-aliases asked) (symbol scope)) (find-ns (symbol scope))))
        named (fn [before pairs]
                (for [[s v] pairs
                      :let [text (str before s)]
                      :when (string/starts-with? text prefix)]
                  {"candidate" text "type" (kind v)}))]
    (sort-by #(get % "candidate")
             (if part
               (when from (named (str scope "/") (ns-publics from)))
               (concat (named "" (ns-map asked))
                       (for [n (concat (keys (ns-aliases asked)) (map ns-name (all-ns)))
                             :when (string/starts-with? (str n) prefix)]
                         {"candidate" (str n) "type" "namespace"}))))))

(defn lookup [asked text]
  (when-let [v (try (ns-resolve asked (symbol text)) (catch Exception _))]
    (if (var? v)
      (let [m (meta v)]
        (into {} (remove (comp nil? val))
              {"name" (:name m) "ns" (some-> (:ns m) ns-name str) "doc" (:doc m)
               "arglists-str" (some->> (:arglists m) (map pr-str) (string/join "\n"))
               "file" (:file m) "line" (:line m) "column" (:column m)
               "macro" (when (:macro m) "true")}))
      {"class" (.getName ^Class v)})))

(defn version [text]
  (let [[major minor incremental] (re-seq #"\d+" text)]
    (into {"version-string" text}
          (remove (comp nil? val))
          {"major" (some-> major Long/parseLong) "minor" (some-> minor Long/parseLong)
           "incremental" (some-> incremental Long/parseLong)})))
