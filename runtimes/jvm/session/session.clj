;; A session: what lives in a JVM that keeps state between evals.
;;
;;   java ... clojure.main session.clj SOCKET        descriptor 0: a connected socket to hob
;;
;; It listens on SOCKET and says `ready` on descriptor 0. Each connection speaks bencode: to the
;; project's own nREPL where that is on the class path, to the ops below where it is not. The end of
;; descriptor 0 is hob's, and ends the session.
;;
;; Only Clojure itself and the JDK are used, so that nothing of the project's is shadowed.
(doseq [file ["wire.clj" "editors.clj" "project.clj"]]
  (load-file (str (.getParent (java.io.File. ^String *file*)) "/" file)))

(ns hob.session
  (:require [clojure.main :as main]
            [clojure.string :as string]
            [hob.editors :as editors]
            [hob.project :as project]
            [hob.wire :as wire :refer [answer input on-thread read-value sender write-all writer]])
  (:import (clojure.lang Compiler DynamicClassLoader LineNumberingPushbackReader
                         LispReader$ReaderException RT Var)
           (java.io InputStream OutputStream PrintStream PrintWriter Reader StringReader StringWriter Writer)
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
    (-> (get-thread-bindings)
        (assoc #'*warn-on-reflection* false)
        (dissoc Compiler/LOADER))))

(def ^:private out-max
  "How many characters wait for a flush, unless a message names a number of its own."
  8192)

(defn- text-writer
  "A writer that sends what is written, under this key, when it is flushed or much of it."
  ^PrintWriter [send msg key]
  (let [text (StringBuilder.)
        most (int (max 1 (get msg "out-limit" out-max)))
        take-first (fn [length]
                     (locking text
                       (let [length (min (int length) (.length text))
                             said (.substring text 0 length)]
                         (.delete text 0 length)
                         said)))
        tell (fn [length]
               (let [said (take-first length)]
                 (when-not (= said "") (send (answer msg key said)))))
        tell-much (fn [] (while (>= (.length text) most) (tell most)))
        tell #(tell Integer/MAX_VALUE)]
    (PrintWriter.
     (proxy [Writer] []
       (write
         ([what] (locking text
                   (if (string? what) (.append text ^String what)
                       (if (integer? what) (.append text (char what))
                           (.append text ^chars what))))
                 (tell-much))
         ([what from length] (locking text
                               (if (string? what)
                                 (.append text ^CharSequence what (int from) (int (+ from length)))
                                 (.append text ^chars what (int from) (int length))))
                             (tell-much)))
       (flush [] (tell))
       (close [] (tell)))
     true)))

(defn- text-reader
  "What a client sends to stdin. `ask` has it send more where there is none."
  ^LineNumberingPushbackReader [^LinkedBlockingQueue lines ask]
  (let [left (atom nil)
        next-text (fn []
                    (or @left
                        (reset! left (or (.poll lines) (do (ask) (.take lines))))))]
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
       (ready [] (not= "" (or @left (.peek lines) "")))
       (close [])))))

(defn- input-of
  "The reader of an eval. A dialogue has one, so that what an eval has not read is there for the next;
  a command of hob's has its own, since its input is another process's."
  ^LineNumberingPushbackReader [session send msg]
  (let [ask #(do (flush) (send (answer msg :status ["need-input"])))]
    (if (get msg "own-input")
      (text-reader (:lines session) ask)
      (let [^LineNumberingPushbackReader in (:in session)]
        (reset! (:ask session) ask)
        ;; What ends the line of a form that was read is no line of the next.
        (when (.ready in) (main/skip-if-eol in))
        in))))

;; By id: `:bindings`, `:executor`, `:current` and `:ask` are atoms, `:lines` what was sent to stdin,
;; `:in` what reads it.
(defonce ^:private sessions (atom {}))

(defn- session-of [bindings]
  (let [id (str (UUID/randomUUID))
        lines (LinkedBlockingQueue.)
        ask (atom nil)]
    {:id id
     :bindings (atom bindings)
     :executor (atom (executor id))
     :current (atom nil)
     :lines lines
     :ask ask
     :in (text-reader lines #(@ask))}))

;; --- eval ------------------------------------------------------------------------------------

(defn- class-name [^Throwable e] (str (class e)))

(defn- root ^Throwable [^Throwable e]
  (if-let [cause (.getCause e)] (recur cause) e))

(defn- explain [^Throwable e]
  (try (main/ex-str (main/ex-triage (Throwable->map e)))
       (catch Throwable _ (str e "\n"))))

(defn- thrown [msg e]
  [(answer msg :err (explain e))
   (answer msg :status ["eval-error"] :ex (class-name e) :root-ex (class-name (root e)))])

(defn- in-session
  "Performs `body` with the session's bindings and streams, and keeps what it did to the bindings.
  Ends with the one `done` of the message; what `body` returns goes before it in the same write."
  [session send msg body]
  (let [out (text-writer send msg :out)
        err (text-writer send msg :err)
        in (input-of session send msg)
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
      (let [ended (some #{"done"} (get (peek @last-words) "status"))
            status (if @interrupted ["interrupted" "done"] ["done"])]
        (apply send (cond-> @last-words (not ended) (conj (answer msg :status status)))))
      (catch Throwable e
        (if @interrupted
          (send (answer msg :status ["interrupted" "done"]))
          (do
            (swap! (:bindings session) assoc #'*e e)
            (apply send (conj (thrown msg e) (answer msg :status ["done"]))))))
      (finally
        (when (get msg "own-input") (.clear ^LinkedBlockingQueue (:lines session)))
        ;; One that was left behind has another in its place.
        (swap! (:current session) #(if (identical? (:msg %) msg) nil %))
        (Thread/interrupted)))))

(defn- printed
  "What is printed to *out* meanwhile, as by a lazy sequence, is output and no part of the value."
  [value]
  (let [text (StringWriter.)]
    (if *print-dup* (print-dup value text) (print-method value text))
    (str text)))

(defn- value-of [msg value]
  (answer msg :ns (str (ns-name *ns*)) :value (printed value)))

(defn- remember [value]
  (set! *3 *2)
  (set! *2 *1)
  (set! *1 value))

(defn- read-form
  ([reader] (read-form reader nil))
  ([reader msg]
   (let [conditionals (keyword (get msg "read-cond" "allow"))]
     (try (read {:read-cond conditionals :eof ::end} reader)
          (catch LispReader$ReaderException e
            (throw (ex-info nil {:clojure.error/phase :read-source} e)))))))

(defn- set-column
  "Has a reader begin in this column. It counts them itself, and has no function for that."
  [^LineNumberingPushbackReader reader column]
  (when-let [^java.lang.reflect.Field field
             (first (filter #(= "_columnNumber" (.getName ^java.lang.reflect.Field %))
                            (.getDeclaredFields LineNumberingPushbackReader)))]
    (.setAccessible field true)
    (.set field reader (int column))))

(defn- code-reader [msg]
  (let [reader (LineNumberingPushbackReader. (StringReader. (get msg "code")))]
    (.setLineNumber reader (int (get msg "line" 1)))
    (some->> (get msg "column") (set-column reader))
    reader))

(defn- eval-one
  "What is to be said of a form: its value, or what it threw. As in a REPL the next one follows, but
  not in a command of hob's."
  [session msg evaluate form]
  (try (let [value (evaluate form)]
         (remember value)
         [(value-of msg value)])
       (catch Throwable e
         (when (or (get msg "own-input") @(:interrupted @(:current session))) (throw e))
         (set! *e e)
         (thrown msg e))))

(defn- eval-forms [session send msg]
  (let [before *ns*
        reader (code-reader msg)
        path (get msg "file" "NO_SOURCE_PATH")
        evaluate (if-let [named (get msg "eval")] (requiring-resolve (symbol named)) eval)]
    (some->> (get msg "ns") symbol find-ns (set! *ns*))
    (with-bindings {Compiler/LINE (int (get msg "line" 1))
                    Compiler/SOURCE_PATH path
                    Compiler/SOURCE (last (string/split path #"/"))}
      ;; What was said is sent before what comes after it is waited for.
      (let [say (fn [words] (flush) (.flush ^Writer *err*) (apply send words))
            words (loop [words []]
                    (let [form (try (read-form reader msg)
                                    (catch Throwable e (say words) (throw e)))]
                      (if (= form ::end)
                        words
                        (do (say words)
                            (recur (eval-one session msg evaluate form))))))]
        (when (get msg "ns") (set! *ns* before))
        words))))

(defn- eval-all [session send msg]
  (let [wanted (get msg "ns")]
    (cond
      (nil? (get msg "code")) [(answer msg :status ["error" "no-code" "done"])]
      (and wanted (nil? (find-ns (symbol wanted))))
      [(answer msg :ns wanted :status ["error" "namespace-not-found" "done"])]
      :else (eval-forms session send msg))))

(defn- has-forms? [text]
  (try (not= ::end (read-form (LineNumberingPushbackReader. (StringReader. text))))
       (catch Exception _ true)))

(defn- load-all [msg]
  (let [path (get msg "file-path" "NO_SOURCE_FILE")
        text (get msg "file" "")
        before *ns*]
    (try
      (let [value (Compiler/load (StringReader. text) path (get msg "file-name" path))]
        (if (has-forms? text) [(answer msg :value (printed value))] []))
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

(defn- known-session
  "The session of a message. One in which a script runs may be the project's nREPL's own: it has a
  place here of the same name."
  [msg]
  (let [id (get msg "session")]
    (or (get @sessions id)
        (when (and id (= "hob/run" (get msg "op")))
          (get (swap! sessions update id #(or % (session-of base-bindings))) id)))))

(defn- runs? [id] (and id (some #(= id (get (:msg @(:current %)) "id")) (vals @sessions))))

(defn- hear
  "Performs one message. What takes long has its own thread."
  [send msg]
  (let [known (known-session msg)
        session (delay (or known (session-of base-bindings)))]
    (case (if (or known (nil? (get msg "session"))) (get msg "op") ::unknown)
      ::unknown (send (answer msg :status ["error" "unknown-session" "done"]))
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
      "eval" (start @session send msg #(eval-all @session send msg))
      "load-file" (start @session send msg #(load-all msg))
      "hob/run" (start @session send msg #(run-script msg))
      ;; Nothing, as text or as a list, is the end of input.
      ("stdin" "hob/stdin" "hob/end")
      (let [text (get msg "stdin" "")]
        (when known
          (.put ^LinkedBlockingQueue (:lines known) (if (string? text) text "")))
        (send (answer msg :status ["done"])))
      "interrupt" (send (answer msg :status (if known (interrupt known msg)
                                                 ["error" "session-ephemeral" "done"])))
      "completions" (send (if-let [prefix (get msg "prefix")]
                            (answer msg
                                    :completions (take 500 (editors/candidates (ns-asked @session msg)
                                                                               prefix))
                                    :status ["done"])
                            (answer msg :status ["error" "completions-error" "done"])))
      "lookup" (let [info (editors/lookup (ns-asked @session msg) (get msg "sym" ""))]
                 (send (answer msg :info (or info {})
                               :status (if info ["done"] ["error" "lookup-error" "done"]))))
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
    (try (if handler (project/serve handler hear runs? channel write) (serve-own channel write))
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
        handler (project/handler)]
    (System/setIn (InputStream/nullInputStream))
    (System/setOut (routed #'*out* System/out))
    (System/setErr (routed #'*err* System/err))
    (on-thread "accept" #(accept-all listener handler))
    (let [version (some-> (project/value-in 'nrepl.version/version) deref :version-string)
          ready (str "ready " (if handler (str "nrepl " version) "own") "\n")]
      (write-all hob (.getBytes ready)))
    (let [byte (ByteBuffer/allocate 1)]
      (while (not (neg? (try (.read hob ^ByteBuffer (.clear byte))
                             (catch java.io.IOException _ -1))))))
    (.halt (Runtime/getRuntime) 0)))

(apply -main *command-line-args*)
