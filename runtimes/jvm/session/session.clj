;; A session: what lives in a JVM that keeps state between evals.
;;
;;   java ... clojure.main session.clj SOCKET        descriptor 0: a connected socket to hob
;;
;; It listens on SOCKET and says `ready` on descriptor 0. Each connection speaks bencode: to the
;; project's own nREPL where that is on the class path, to the ops below where it is not. The end of
;; descriptor 0 is hob's, and ends the session.
;;
;; Only Clojure itself and the JDK are used, so that nothing of the project's is shadowed.
(doseq [file ["wire.clj" "editors.clj"]]
  (load-file (str (.getParent (java.io.File. ^String *file*)) "/" file)))

(ns hob.session
  (:require [clojure.main :as main]
            [clojure.string :as string]
            [hob.editors :as editors]
            [hob.wire :as wire :refer [answer input on-thread output read-value sender write-all writer]])
  (:import (clojure.lang Compiler DynamicClassLoader LineNumberingPushbackReader
                         LispReader$ReaderException RT Var)
           (java.io BufferedOutputStream InputStream OutputStream PrintStream PrintWriter Reader StringReader Writer)
           (java.net StandardProtocolFamily UnixDomainSocketAddress)
           (java.nio ByteBuffer)
           (java.nio.channels ServerSocketChannel SocketChannel)
           (java.nio.charset StandardCharsets)
           (java.util UUID)
           (java.util.concurrent ExecutorService LinkedBlockingQueue ThreadFactory
                                 ThreadPoolExecutor TimeUnit)))

(set! *warn-on-reflection* true)

;; --- threads of a client's session ------------------------------------------------------------

(defn- executor
  "One thread, which ends when it has had nothing to do for a while."
  ^ThreadPoolExecutor [id]
  (let [loader (DynamicClassLoader. (RT/baseLoader))
        factory (reify ThreadFactory
                  (newThread [_ task]
                    (doto (Thread. ^Runnable task (str "session " id))
                      (.setDaemon true)
                      (.setContextClassLoader loader))))]
    (doto (ThreadPoolExecutor. 1 1 30 TimeUnit/SECONDS (LinkedBlockingQueue.) factory)
      (.allowCoreThreadTimeOut true))))

(def ^:private base-bindings
  (main/with-bindings
    (in-ns 'user)
    (apply require main/repl-requires)
    (dissoc (get-thread-bindings) #'*warn-on-reflection* Compiler/LOADER)))

;; By id: `:bindings`, `:executor` and `:current` are atoms, `:lines` what was sent to stdin.
(defonce ^:private sessions (atom {}))

(defn- session-of [bindings]
  (let [id (str (UUID/randomUUID))]
    {:id id
     :bindings (atom bindings)
     :executor (atom (executor id))
     :current (atom nil)
     :lines (LinkedBlockingQueue.)}))

(defn- text-writer
  "A writer that sends what is written, under this key, when it is flushed or much of it."
  ^PrintWriter [send msg key]
  (let [text (StringBuilder.)
        tell (fn []
               (let [said (locking text
                            (let [said (str text)] (.setLength text 0) said))]
                 (when-not (= said "") (send (answer msg key said)))))]
    (PrintWriter.
     (proxy [Writer] []
       (write
         ([what] (locking text
                   (if (string? what) (.append text ^String what)
                       (if (integer? what) (.append text (char what))
                           (.append text ^chars what)))))
         ([what from length] (locking text
                               (if (string? what)
                                 (.append text ^CharSequence what (int from) (int (+ from length)))
                                 (.append text ^chars what (int from) (int length)))))) 
       (flush [] (tell))
       (close [] (tell)))
     true)))

(defn- text-reader
  "What a client sends to stdin. It is asked for more where there is none."
  [session send msg]
  (let [^LinkedBlockingQueue lines (:lines session)
        left (atom nil)
        next-text (fn []
                    (or @left
                        (reset! left (or (.poll lines)
                                         (do (flush)
                                             (send (answer msg :status ["need-input"]))
                                             (.take lines))))))]
    (LineNumberingPushbackReader.
     (proxy [Reader] []
       (read
         ([] (let [one (char-array 1)]
               (if (pos? (.read ^Reader this one 0 1)) (int (aget one 0)) -1)))
         ([chars] (.read ^Reader this ^chars chars 0 (alength ^chars chars)))
         ([chars from length]
          (let [^String text (next-text)
                some (min (long length) (count text))]
            (if (= text "")
              (do (reset! left nil) -1)
              (do (.getChars text 0 some ^chars chars (int from))
                  (reset! left (when (< some (count text)) (subs text some)))
                  some)))))
       (close [])))))

;; --- eval ------------------------------------------------------------------------------------

(defn- class-name [^Throwable e] (str (class e)))

(defn- root ^Throwable [^Throwable e]
  (if-let [cause (.getCause e)] (recur cause) e))

(defn- explain [^Throwable e]
  (try (main/ex-str (main/ex-triage (Throwable->map e)))
       (catch Throwable _ (str e "\n"))))

(defn- in-session
  "Performs `body` with the session's bindings and streams, and keeps what it did to the bindings.
  Ends with the one `done` of the message; what `body` returns goes before it in the same write."
  [session send msg body]
  (let [out (text-writer send msg :out)
        err (text-writer send msg :err)
        in (text-reader session send msg)
        last-words (atom [])
        interrupted (atom false)]
    (reset! (:current session) {:msg msg :thread (Thread/currentThread) :interrupted interrupted})
    (try
      (with-bindings (assoc @(:bindings session)
                            #'*out* out #'*err* err #'*in* in
                            Compiler/LOADER (.getContextClassLoader (Thread/currentThread)))
        (try
          (reset! last-words (body))
          (finally
            (.flush out)
            (.flush err)
            (reset! (:bindings session)
                    (dissoc (get-thread-bindings) #'*out* #'*err* #'*in* Compiler/LOADER)))))
      (apply send (concat @last-words [(answer msg :status ["done"])]))
      (catch Throwable e
        (if @interrupted
          (send (answer msg :status ["interrupted" "done"]))
          (do
            (swap! (:bindings session) assoc #'*e e)
            (send (answer msg :err (explain e))
                  (answer msg :status ["eval-error"] :ex (class-name e) :root-ex (class-name (root e)))
                  (answer msg :status ["done"])))))
      (finally
        ;; One that was left behind has another in its place.
        (swap! (:current session) #(if (identical? (:msg %) msg) nil %))
        (Thread/interrupted)))))

(defn- value-of [msg value]
  (answer msg :ns (str (ns-name *ns*)) :value (with-out-str (pr value))))

(defn- remember [value]
  (set! *3 *2)
  (set! *2 *1)
  (set! *1 value))

(defn- read-form [reader]
  (try (read {:read-cond :allow :eof ::end} reader)
       (catch LispReader$ReaderException e
         (throw (ex-info nil {:clojure.error/phase :read-source} e)))))

(defn- code-reader [msg]
  (doto (LineNumberingPushbackReader. (StringReader. (get msg "code" "")))
    (.setLineNumber (int (get msg "line" 1)))))

(defn- to-ns [msg]
  (when-let [wanted (get msg "ns")]
    (if-let [found (find-ns (symbol wanted))]
      (set! *ns* found)
      (throw (IllegalArgumentException. (str "there is no namespace " wanted))))))

(defn- eval-all [send msg]
  (let [before *ns*
        reader (code-reader msg)
        path (get msg "file" "NO_SOURCE_PATH")]
    (to-ns msg)
    (with-bindings {Compiler/LINE (int (get msg "line" 1))
                    Compiler/SOURCE_PATH path
                    Compiler/SOURCE (last (string/split path #"/"))}
      (let [words (loop [words []]
                    (let [form (read-form reader)]
                      (if (= form ::end)
                        words
                        ;; A value is sent before what comes after it is waited for.
                        (do (apply send words)
                            (let [value (eval form)]
                              (remember value)
                              (recur [(value-of msg value)]))))))]
        (when (get msg "ns") (set! *ns* before))
        words))))

(defn- load-all [msg]
  (let [path (get msg "file-path" "NO_SOURCE_FILE")
        before *ns*]
    (try
      [(value-of msg (Compiler/load (StringReader. (get msg "file" "")) path
                                    (get msg "file-name" path)))]
      (finally (set! *ns* before)))))

;; --- a script of its own ------------------------------------------------------------------------

(defonce ^:private scripts (atom 0))

(defn- forget
  "Lets go of a script's namespace. Classes of its loader go with the last of what names them."
  [found]
  (remove-ns (ns-name found))
  (dosync (alter @#'clojure.core/*loaded-libs* disj (ns-name found))))

(defn- run-forms
  "Evaluates a script as `clojure.main SCRIPT` does, and adds each namespace that it made its own."
  [reader made]
  (let [known (set (all-ns))]
    (loop []
      (let [form (read-form reader)]
        (when-not (= form ::end)
          (eval form)
          (when-not (known *ns*) (swap! made conj *ns*))
          (recur))))))

(defn- skip-first-line [^LineNumberingPushbackReader reader]
  (let [c (.read reader)]
    (if (= c (int \#))
      (let [d (.read reader)]
        (if (= d (int \!)) (.readLine reader) (do (.unread reader d) (.unread reader c))))
      (when-not (neg? c) (.unread reader c)))))

(defn- run-script [msg]
  (let [path (get msg "file")
        main-ns (get msg "main")
        own (create-ns (symbol (str "hob.script-" (swap! scripts inc))))
        made (atom #{own})
        thread (Thread/currentThread)
        before (.getContextClassLoader thread)
        loader (DynamicClassLoader. before)]
    (try
      (.setContextClassLoader thread loader)
      (with-bindings {#'*ns* own
                      #'*command-line-args* (seq (get msg "args"))
                      Compiler/LOADER loader
                      Compiler/LINE (int 0)
                      Compiler/SOURCE_PATH (or path "NO_SOURCE_PATH")
                      Compiler/SOURCE (if path (.getName (java.io.File. ^String path)) "NO_SOURCE_FILE")}
        (refer 'clojure.core)
        (if main-ns
          (do (require (symbol main-ns))
              (apply (ns-resolve (symbol main-ns) '-main) (get msg "args")))
          (with-open [file (java.io.FileInputStream. ^String path)]
            (let [reader (LineNumberingPushbackReader.
                          (java.io.InputStreamReader. file StandardCharsets/UTF_8))]
              (skip-first-line reader)
              (run-forms reader made)))))
      []
      (finally
        (.setContextClassLoader thread before)
        (when-not (= 1 (get msg "keep")) (run! forget @made))))))

;; --- the ops --------------------------------------------------------------------------------------

(defn- ns-asked [session msg]
  (or (some-> (get msg "ns") symbol find-ns)
      (get @(:bindings session) #'*ns*)
      (find-ns 'user)))

(defn- start [session send msg body]
  (.execute ^ExecutorService @(:executor session) #(in-session session send msg body)))

(defn- stop-thread
  "The end of a thread that does not hear. From JDK 20 on there is none."
  [^Thread thread]
  (try (.invoke (.getMethod Thread "stop" (make-array Class 0)) thread (make-array Object 0))
       (catch Exception _)))

(defn- interrupt [session msg]
  (let [{current :msg :keys [^Thread thread interrupted]} @(:current session)
        wanted (get msg "interrupt-id")]
    (cond
      (nil? current) ["session-idle" "done"]
      (and wanted (not= wanted (get current "id"))) ["error" "interrupt-id-mismatch" "done"]
      (= 1 (get msg "abandon"))
      (do (reset! interrupted true)
          (reset! (:current session) nil)
          (.shutdownNow ^ExecutorService
                        (first (reset-vals! (:executor session) (executor (:id session)))))
          ["done"])
      :else
      (do (reset! interrupted true)
          (.interrupt thread)
          (on-thread "stop" #(do (Thread/sleep 1000)
                                 (when (identical? current (:msg @(:current session)))
                                   (stop-thread thread))))
          ["done"]))))

(def ^:private ops
  ["clone" "close" "completions" "describe" "eval" "interrupt" "load-file" "lookup" "ls-sessions"
   "stdin"])

(defn- describe [msg]
  (answer msg
          :ops (zipmap ops (repeat {}))
          :versions {"clojure" (editors/version (clojure-version))
                     "java" (editors/version (System/getProperty "java.version"))}
          :aux {"current-ns" "user"}
          :status ["done"]))

(defn- hear
  "Performs one message. What takes long has its own thread."
  [send msg]
  (let [known (get @sessions (get msg "session"))
        session (delay (or known (session-of base-bindings)))
        msg (if known msg (dissoc msg "session"))]
    (case (get msg "op")
      "clone" (let [made (session-of (if known @(:bindings known) base-bindings))]
                (swap! sessions assoc (:id made) made)
                (send (answer msg :new-session (:id made) :status ["done"])))
      "close" (do (when known
                    (swap! sessions dissoc (:id known))
                    (some-> ^Thread (:thread @(:current known)) .interrupt)
                    (.shutdown ^ExecutorService @(:executor known)))
                  (send (answer msg :status ["done" "session-closed"])))
      "ls-sessions" (send (answer msg :sessions (keys @sessions) :status ["done"]))
      "describe" (send (describe msg))
      "eval" (start @session send msg #(eval-all send msg))
      "load-file" (start @session send msg #(load-all msg))
      "hob/run" (start @session send msg #(run-script msg))
      "stdin" (do (when known (.put ^LinkedBlockingQueue (:lines known) (get msg "stdin" "")))
                  (send (answer msg :status ["done"])))
      "interrupt" (send (answer msg :status (if known (interrupt known msg) ["session-idle" "done"])))
      "completions" (send (answer msg
                                  :completions (take 500 (editors/candidates (ns-asked @session msg)
                                                                     (get msg "prefix" "")))
                                  :status ["done"]))
      "lookup" (let [info (editors/lookup (ns-asked @session msg) (get msg "sym" ""))]
                 (send (answer msg :info (or info {})
                               :status (if info ["done"] ["lookup-error" "done"]))))
      (send (answer msg :op (get msg "op" "") :status ["error" "unknown-op" "done"])))))

(defn- serve-own [channel write]
  (let [in (input channel)
        send (sender write)]
    (loop []
      (let [msg (read-value in)]
        (try (hear send msg)
             (catch Throwable e
               (send (answer msg :err (explain e) :status ["error" "done"]))))
        (recur)))))

;; --- the project's nREPL --------------------------------------------------------------------------

(defn- value-in [sym]
  (try (requiring-resolve sym) (catch java.io.FileNotFoundException _)))

(defn- middleware
  "What the project's `.nrepl.edn` names: functions, or lists of their names."
  [named]
  (mapcat (fn [one]
            (let [found (requiring-resolve one)]
              (if (sequential? @found) (middleware @found) [found])))
          named))

(defn- project-handler []
  (when-let [default (value-in 'nrepl.server/default-handler)]
    (let [named (:middleware (some-> (value-in 'nrepl.config/config) deref))]
      (apply default (middleware named)))))

(defn- asker
  "A function of a transport: one that sends what is said while a message is performed to who has
  sent that message. nREPL asks for input on the connection on which a dialogue was cloned, and that
  client may have left, while others use what it has cloned."
  []
  (let [send (value-in 'nrepl.transport/send)
        performed (value-in 'nrepl.middleware.interruptible-eval/*msg*)
        ;; The protocol is the project's: it is not there when this file is compiled.
        made (eval '(fn [send] (reify nrepl.transport/Transport
                                 (recv [this] nil)
                                 (recv [this timeout] nil)
                                 (send [this said] (send said) this))))]
    (fn [transport]
      (made (fn [said] (send (or (:transport (some-> performed deref)) transport) said))))))

(defn- serve-project [handler channel write]
  (let [transport ((value-in 'nrepl.transport/bencode) (input channel)
                                                             (BufferedOutputStream. (output write)))
        send (sender write)
        asker (asker)
        hear (fn [msg]
               (case (:op msg)
                 "hob/run" (hear send (into {} (map (fn [[k v]] [(name k) v])) (dissoc msg :transport)))
                 "clone" (handler (update msg :transport asker))
                 (handler msg)))]
    ((value-in 'nrepl.server/handle) hear transport)))

;; --- the process ----------------------------------------------------------------------------------

(defn- routed
  "A stream of the JVM's whose bytes go to the eval of the thread that writes them."
  [^Var to ^PrintStream before]
  (PrintStream.
   (proxy [OutputStream] []
     (write
       ([what] (if (bytes? what)
                 (.write ^OutputStream this what 0 (alength ^bytes what))
                 (.write ^OutputStream this (byte-array [(unchecked-byte (int what))]) 0 1)))
       ([bytes from length]
        (if (.getThreadBinding to)
          (.write ^Writer @to (String. ^bytes bytes (int from) (int length) StandardCharsets/UTF_8))
          (.write before ^bytes bytes (int from) (int length)))))
     (flush [] (if (.getThreadBinding to) (.flush ^Writer @to) (.flush before))))
   true "UTF-8"))

(defn- serve [handler ^SocketChannel channel]
  (let [write (writer channel)]
    (try (if handler (serve-project handler channel write) (serve-own channel write))
         (catch java.io.IOException _)
         (finally (write wire/end) (.close channel)))))

(defn- accept-all [^ServerSocketChannel listener handler]
  (loop []
    (let [channel (.accept listener)]
      (on-thread "connection" #(serve handler channel))
      (recur))))

(defn -main [socket]
  (let [^SocketChannel hob (System/inheritedChannel)
        listener (doto (ServerSocketChannel/open StandardProtocolFamily/UNIX)
                   (.bind (UnixDomainSocketAddress/of ^String socket)))
        handler (project-handler)]
    (System/setIn (InputStream/nullInputStream))
    (System/setOut (routed #'*out* System/out))
    (System/setErr (routed #'*err* System/err))
    (on-thread "accept" #(accept-all listener handler))
    (let [version (some-> (value-in 'nrepl.version/version) deref :version-string)
          ready (str "ready " (if handler (str "nrepl " version) "own") "\n")]
      (write-all hob (.getBytes ready)))
    (let [byte (ByteBuffer/allocate 1)]
      (while (not (neg? (try (.read hob ^ByteBuffer (.clear byte))
                             (catch java.io.IOException _ -1))))))
    (.halt (Runtime/getRuntime) 0)))

(apply -main *command-line-args*)
