;; nREPL's own tests, asked of the server at the port `suite.port`. Each server that a test starts is
;; that one, and closing it ends nothing. The words are what is run; the last lines are for test_nrepl.py.
(require 'clojure.test 'nrepl.server 'nrepl.transport)
(alter-var-root
 #'nrepl.server/start-server
 (constantly
  (fn [& _]
    (nrepl.server/map->Server
     {:port (Integer/parseInt (System/getProperty "suite.port"))
      :open-transports (atom #{})
      :transport nrepl.transport/bencode}))))
(alter-var-root #'nrepl.server/stop-server (constantly (fn [_] nil)))

(def spaces (map symbol *command-line-args*))
(apply require spaces)
(doseq [out (map symbol (re-seq #"\S+" (System/getProperty "suite.out")))]
  (alter-meta! (find-var out) dissoc :test))
;; hob speaks bencode alone.
(alter-var-root (find-var 'nrepl.core-test/transport-fns) (constantly [#'nrepl.transport/bencode]))

(def failed (atom (sorted-set)))
(def begun (atom 0))
(let [report clojure.test/report]
  (binding [clojure.test/*test-out* *out*
            clojure.test/report
            (fn [event]
              (case (:type event)
                :begin-test-var (swap! begun inc)
                (:fail :error) (swap! failed conj (str (symbol (first clojure.test/*testing-vars*))))
                nil)
              (report event))]
    (apply clojure.test/run-tests spaces)))
(println "suite: run" @begun)
(doseq [one @failed] (println "suite: failed" one))
(shutdown-agents)
(System/exit 0)
