;; Bencode, and the connections of a session.
(ns hob.wire
  (:import (java.io BufferedInputStream ByteArrayOutputStream InputStream OutputStream)
           (java.nio ByteBuffer)
           (java.nio.channels SocketChannel)
           (java.nio.charset StandardCharsets)
           (java.util Arrays)
           (java.util.concurrent ArrayBlockingQueue TimeUnit)))

(set! *warn-on-reflection* true)

;; --- bencode ---------------------------------------------------------------------------------

(defn- read-number [^InputStream in first-digit end]
  (loop [digits (StringBuilder. (str (char first-digit)))]
    (let [c (.read in)]
      (cond (= c (int end)) (Long/parseLong (str digits))
            (neg? c) (throw (java.io.EOFException.))
            :else (recur (.append digits (char c)))))))

(declare read-value)

(defn- read-list [in]
  (loop [values []]
    (let [value (read-value in)]
      (if (= value ::end) values (recur (conj values value))))))

(defn- read-string-of [^InputStream in length]
  (let [bytes (.readNBytes in (int length))]
    (when (< (alength bytes) (long length)) (throw (java.io.EOFException.)))
    (String. bytes StandardCharsets/UTF_8)))

(defn read-value [^InputStream in]
  (let [c (.read in)]
    (case c
      100 (into {} (map vec) (partition 2 (read-list in)))
      108 (read-list in)
      105 (read-number in (.read in) \e)
      101 ::end
      -1 (throw (java.io.EOFException.))
      (read-string-of in (read-number in c \:)))))

(defn- write-bytes [^ByteArrayOutputStream out ^bytes bytes]
  (.writeBytes out (.getBytes (str (alength bytes) ":") StandardCharsets/US_ASCII))
  (.writeBytes out bytes))

(defn- write-value [^ByteArrayOutputStream out value]
  (cond
    (map? value) (do (.write out (int \d))
                     (doseq [[k v] (sort-by first (map (fn [[k v]] [(name k) v]) value))]
                       (write-value out k)
                       (write-value out v))
                     (.write out (int \e)))
    (integer? value) (.writeBytes out (.getBytes (str "i" value "e") StandardCharsets/US_ASCII))
    (coll? value) (do (.write out (int \l))
                      (doseq [v value] (write-value out v))
                      (.write out (int \e)))
    (instance? clojure.lang.Named value) (write-value out (name value))
    :else (write-bytes out (.getBytes (str value) StandardCharsets/UTF_8))))

;; --- a connection ----------------------------------------------------------------------------

;; The streams of `java.nio.channels.Channels` hold one lock for both ways.
(defn input [^SocketChannel channel]
  (BufferedInputStream.
   (proxy [InputStream] []
     (read
       ([] (let [one (byte-array 1)]
             (if (pos? (.read channel (ByteBuffer/wrap one))) (bit-and (aget one 0) 0xff) -1)))
       ([bytes] (.read channel (ByteBuffer/wrap ^bytes bytes)))
       ([bytes from length] (.read channel (ByteBuffer/wrap ^bytes bytes (int from) (int length)))))
     (close [] (.close channel)))))

;; A thread that is interrupted while it writes to a channel closes it. So a thread that runs no
;; code of a user's does all writing, and what is ready together goes in one write.

(def ^:private waiting-max 1024)

(def end "What a writer is given last." ::end)

(defn write-all [^SocketChannel channel ^bytes bytes]
  (let [buffer (ByteBuffer/wrap bytes)]
    (while (.hasRemaining buffer) (.write channel buffer))))

(defn- write-what-waits [channel ^ArrayBlockingQueue waiting]
  (loop []
    (let [ready (doto (java.util.ArrayList.) (.add (.take waiting)))
          out (ByteArrayOutputStream.)]
      (.drainTo waiting ready)
      (doseq [piece ready :while (not= piece ::end)] (.writeBytes out piece))
      (write-all channel (.toByteArray out))
      (when-not (.contains ready ::end) (recur)))))

(defn on-thread [name body]
  (doto (Thread. ^Runnable body ^String name) (.setDaemon true) (.start)))

(defn writer
  "A function that has bytes written in their turn. It waits while too much waits. A client that
  has left hears nothing: what it began goes on, as its state is the session's."
  [^SocketChannel channel]
  (let [waiting (ArrayBlockingQueue. waiting-max)
        gone (volatile! false)]
    (on-thread "writer" #(try (write-what-waits channel waiting)
                              (catch java.io.IOException _)
                              (finally (vreset! gone true) (.clear waiting))))
    (fn [piece]
      (loop [interrupted (if (Thread/interrupted) true false)]
        (let [taken (or @gone
                        (try (.offer waiting piece 100 TimeUnit/MILLISECONDS)
                             (catch InterruptedException _ ::interrupted)))]
          (cond (= taken ::interrupted) (recur true)
                (not taken) (recur interrupted)
                interrupted (.interrupt (Thread/currentThread))))))))

(defn output [write]
  (proxy [OutputStream] []
    (write
      ([what] (write (if (bytes? what) (aclone ^bytes what) (byte-array [(unchecked-byte (int what))]))))
      ([bytes from length] (write (Arrays/copyOfRange ^bytes bytes (int from) (int (+ from length))))))
    (close [])))

(defn sender
  "A function that sends messages, all that it is given together."
  [write]
  (fn [& messages]
    (let [out (ByteArrayOutputStream.)]
      (run! #(write-value out %) messages)
      (write (.toByteArray out)))))

(defn answer [msg & {:as more}]
  (merge (select-keys msg ["id" "session"]) (into {} (map (fn [[k v]] [(name k) v])) more)))
