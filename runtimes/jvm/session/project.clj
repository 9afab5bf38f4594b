;; The project's own nREPL as what answers in a session.
(ns hob.project
  (:require [hob.wire :refer [input output sender]])
  (:import (java.io BufferedOutputStream Reader)
           (java.util.concurrent LinkedBlockingQueue)))

(set! *warn-on-reflection* true)

(defn value-in [sym]
  (try (requiring-resolve sym) (catch java.io.FileNotFoundException _)))

(defn- middleware
  "What the project's `.nrepl.edn` names: functions, or lists of their names."
  [named]
  (mapcat (fn [one]
            (let [found (requiring-resolve one)]
              (if (sequential? @found) (middleware @found) [found])))
          named))

(defn handler []
  (when-let [default (value-in 'nrepl.server/default-handler)]
    (let [named (:middleware (some-> (value-in 'nrepl.config/config) deref))]
      (apply default (middleware named)))))

(defn- transport
  "A transport of the project's that sends by this function. The protocol is not there when this file
  is compiled."
  [send]
  ((eval '(fn [send] (reify nrepl.transport/Transport
                       (recv [this] nil)
                       (recv [this timeout] nil)
                       (send [this said] (send said) this))))
   send))

(defn- asker
  "A function of a transport: one that sends what is said while a message is performed to who has
  sent that message. nREPL asks for input on the connection on which a dialogue was cloned, and that
  client may have left, while others use what it has cloned."
  []
  (let [send (value-in 'nrepl.transport/send)
        performed (value-in 'nrepl.middleware.interruptible-eval/*msg*)]
    (fn [asked]
      (transport (fn [said] (send (or (:transport (some-> performed deref)) asked) said))))))

(defn- input-parts
  "Of a dialogue of nREPL's: the queue of what was sent to stdin, and the reader of it."
  [id]
  (some-> (value-in 'nrepl.middleware.session/sessions) deref deref (get id) meta
          ((juxt :input-queue :stdin-reader))))

(defn- end-input
  "The end of a command's input. nREPL's own end is a Long, which its reader takes for a character."
  [msg]
  (when-let [[^LinkedBlockingQueue queue] (input-parts (:session msg))]
    (.put queue (Integer/valueOf -1))))

(defn- drainer
  "A transport that lets go of the input that an eval has left before its end is told. The input of the
  next command is another process's."
  [to id]
  (let [send (value-in 'nrepl.transport/send)]
    (transport
     (fn [said]
       (when (some #{"done"} (map name (let [status (:status said)]
                                         (if (coll? status) status (remove nil? [status])))))
         (let [[^LinkedBlockingQueue queue ^Reader reader] (input-parts id)]
           (some-> queue .clear)
           (when reader (while (.ready reader) (.read reader)))))
       (send to said)))))

(defn serve
  "Serves a connection. What is hob's own among its messages, `own` performs, and `own-runs?` says of
  an id whether it does."
  [handler own own-runs? channel write]
  (let [transport ((value-in 'nrepl.transport/bencode) (input channel)
                                                             (BufferedOutputStream. (output write)))
        send (sender write)
        asker (asker)
        own (fn [msg]
              (own send (into {} (map (fn [[k v]] [(name k) v])) (dissoc msg :transport))))
        hear (fn [msg]
               (case (if (own-runs? (:interrupt-id msg)) "hob/run" (:op msg))
                 ("hob/run" "hob/stdin") (own msg)
                 "hob/end" (end-input msg)
                 "clone" (handler (update msg :transport asker))
                 (handler (if (:own-input msg) (update msg :transport drainer (:session msg)) msg))))]
    ((value-in 'nrepl.server/handle) hear transport)))
