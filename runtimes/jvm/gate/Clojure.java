package hob;

import java.io.StringReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A standby of {@code clojure.main}: Clojure itself is started ahead, and the namespaces of jars that
 * the script, or the namespace behind {@code -m}, names in its first forms. The script is read for
 * that and never evaluated; no namespace of a directory is loaded, and none of the jar that the main
 * namespace is in. Then a script that is none is compiled some times, so that the compiler has run.
 */
final class Clojure {
    private Clojure() {}

    static final String MAIN = "clojure.main";
    private static final int PRACTICE = 24;
    /** The file beside the gate with a line for each lib that is not loaded ahead. */
    private static final String LEFT_OUT = "left-out";

    /** Files of a directory that Clojure looks for by itself when it starts, beside those of libs. */
    private static final String[] OWN = {
        "user.clj", "user.cljc", "user__init.class", "data_readers.clj", "data_readers.cljc"
    };

    /** What a lib may lie in. */
    private static final String[] ENDS = {".clj", ".cljc", "__init.class"};

    /** Libs that are loaded, as paths. */
    private static final List<String> loaded = new ArrayList<>();

    private static Class<?> runtime;

    private static MethodHandle method(Class<?> of, String name, Class<?> gives, Class<?>... takes)
            throws ReflectiveOperationException {
        return Gate.all().findStatic(of, name, MethodType.methodType(gives, takes));
    }

    /** Gets ready for a call whose first arguments are these. */
    static void prepare(Class<?> main, List<String> words) throws Throwable {
        ClassLoader loader = main.getClassLoader();
        if (!isAhead(loader)) {
            return;
        }
        runtime = Class.forName("clojure.lang.RT", true, loader);
        method(runtime, "init", void.class).invoke();
        Class<?> var = Class.forName("clojure.lang.Var", true, loader);
        MethodHandle named = method(runtime, "var", var, String.class, String.class);
        Object require = named.invoke("clojure.core", "require");
        call(require, symbol(MAIN));
        // The first macro of a program loads the specs of Clojure's own, which take numbers.
        Class<?> compiler = Class.forName("clojure.lang.Compiler", true, loader);
        try {
            method(compiler, "ensureMacroCheck", var).invokeWithArguments();
        } catch (NoSuchMethodException error) {
            // Before 1.9 there are none.
        }
        AtomicInteger id = (AtomicInteger) Gate.all().findStaticGetter(runtime, "id", AtomicInteger.class).invoke();
        int before = id.get();
        Object ahead = evaluate(loader, AHEAD);
        String script = words.isEmpty() || words.get(0).startsWith("-") ? null : words.get(0);
        String own = words.size() > 1 && script == null ? words.get(1) : null;
        List<?> libs = (List<?>) call(ahead, script, own);
        // What has no part in the program takes no numbers of the names of its classes.
        id.set(before);
        List<String> leftOut = Files.readAllLines(leftOut());
        for (Object lib : libs) {
            String name = lib.toString();
            if (!leftOut.contains(name)) {
                require(require, name);
            }
        }
        before = id.get();
        practise(loader);
        id.set(before);
        for (Object lib : (List<?>) call(evaluate(loader, LOADED))) {
            loaded.add(lib.toString().replace('-', '_').replace('.', '/'));
        }
        id.set(before);
    }

    /** The files that decide what a directory of the class path gives to what was loaded. */
    static List<String> files() {
        List<String> files = new ArrayList<>();
        if (runtime == null) {
            return files;
        }
        files.addAll(List.of(OWN));
        for (String lib : loaded) {
            for (String end : ENDS) {
                files.add(lib + end);
            }
        }
        return files;
    }

    /** Whether nothing of the program's is in what Clojure does when it starts. */
    private static boolean isAhead(ClassLoader loader) {
        URL main = loader.getResource("clojure/main.class");
        if (main == null || !main.getProtocol().equals("jar")) {
            return false;
        }
        for (int index = 0; index < 3; index++) {
            if (loader.getResource(OWN[index]) != null) {
                return false;
            }
        }
        for (Object name : System.getProperties().keySet()) {
            if (name.toString().startsWith("clojure.server.")) {
                return false;
            }
        }
        return true;
    }

    /** Requires a lib. One that looks at the environment meanwhile is left out from the next time on. */
    private static void require(Object require, String name) throws Throwable {
        try {
            call(require, symbol(name));
        } catch (Throwable error) {
            // It fails in the call again, by itself.
            leaveOut(name, "it cannot be loaded ahead: " + error);
        }
        if (World.hasReadEnvironment()) {
            leaveOut(name, "it reads the environment while it is loaded");
        }
    }

    private static Path leftOut() {
        return Path.of(Gate.library()).resolveSibling(LEFT_OUT);
    }

    private static void leaveOut(String name, String why) throws Throwable {
        Files.writeString(leftOut(), name + "\n", StandardOpenOption.APPEND);
        Standby.fail(name + ": " + why);
    }

    /** A text of Clojure, evaluated in a namespace that is taken away again. */
    private static Object evaluate(ClassLoader loader, String text) throws Throwable {
        Class<?> compiler = Class.forName("clojure.lang.Compiler", true, loader);
        MethodHandle load = method(compiler, "load", Object.class, java.io.Reader.class, String.class, String.class);
        return load.invoke((java.io.Reader) new StringReader(text), "NO_SOURCE_PATH", "NO_SOURCE_FILE");
    }

    private static Object symbol(String name) throws Throwable {
        Class<?> symbol = Class.forName("clojure.lang.Symbol", true, runtime.getClassLoader());
        return method(symbol, "intern", symbol, String.class).invoke(name);
    }

    private static Object call(Object function, Object... words) throws Throwable {
        Class<?> type = Class.forName("clojure.lang.IFn", true, runtime.getClassLoader());
        MethodType takes = MethodType.genericMethodType(words.length);
        return Gate.all().findVirtual(type, "invoke", takes).bindTo(function).invokeWithArguments(words);
    }

    /** Compiles and runs what is no program's. */
    private static void practise(ClassLoader loader) throws Throwable {
        Class<?> main = Class.forName(MAIN, true, loader);
        MethodHandle run = method(main, "main", void.class, String[].class);
        for (int turn = 0; turn < PRACTICE; turn++) {
            evaluate(loader, SAMPLE);
            run.invoke(new String[] {"/dev/null", "a"});
        }
    }

    /** A function that tells all libs that are loaded. */
    private static final String LOADED = "(clojure.core/fn [] (clojure.core/vec (clojure.core/loaded-libs)))";

    private static final String SAMPLE =
            """
            (ns hob.sample)
            (defn one [x & more] (apply str (map inc (cons x more))))
            (defn- two [{:keys [a b] :or {b 2}}] (let [[c d] [a b]] (if (> c d) :more (str c "-" d))))
            (doseq [x (range 3)] (one x 1))
            (println (one 1 2) (two {:a 1}) *command-line-args*)
            (try (when-let [x (first [1])] (case x 1 (throw (ex-info "x" {}))))
                 (catch Exception e (.getMessage ^Throwable e)))
            (remove-ns 'hob.sample)
            (dosync (alter @#'clojure.core/*loaded-libs* disj 'hob.sample))
            """;

    /**
     * A function of a script and of a main namespace, one of them {@code nil}: the libs of jars that
     * are to be required ahead, in the order in which they are named.
     */
    private static final String AHEAD =
            """
            (in-ns 'hob.ahead)
            (clojure.core/refer 'clojure.core)
            (def loader (.getContextClassLoader (Thread/currentThread)))
            (defn path [lib] (.replace (.replace (name lib) \\- \\_) \\. \\/))
            (defn url [lib]
              (some (fn [end] (.getResource loader (str (path lib) end))) ["__init.class" ".clj" ".cljc"]))
            (defn source [lib] (some (fn [end] (.getResource loader (str (path lib) end))) [".clj" ".cljc"]))
            (defn jar [url]
              (when (= "jar" (some-> url .getProtocol))
                (let [text (str url)] (subs text 0 (.indexOf text "!/")))))
            (defn libs-of [prefix spec]
              (let [spec (if (and (seq? spec) (= 'quote (first spec))) (second spec) spec)
                    named (fn [lib] (symbol (str (when prefix (str prefix ".")) lib)))]
                (cond
                  (symbol? spec) [(named spec)]
                  (and (vector? spec) (symbol? (first spec))
                       (or (nil? (second spec)) (keyword? (second spec)))) [(named (first spec))]
                  (and (sequential? spec) (symbol? (first spec)) (not prefix))
                  (mapcat (fn [one] (libs-of (first spec) one)) (rest spec)))))
            (defn libs-in [form]
              (when (seq? form)
                (cond
                  (= 'ns (first form))
                  (mapcat (fn [part] (when (and (seq? part) ('#{:require :use require use} (first part)))
                                       (mapcat (fn [spec] (libs-of nil spec)) (rest part))))
                          (rest form))
                  ('#{require use} (first form)) (mapcat (fn [spec] (libs-of nil spec)) (rest form)))))
            (defn libs-named [text]
              (binding [*read-eval* false *data-readers* {} *default-data-reader-fn* nil
                        *ns* (the-ns 'hob.ahead)]
                (let [reader (java.io.PushbackReader. (java.io.StringReader. text) 2)]
                  (loop [libs []]
                    (let [form (try (read {:read-cond :allow :eof nil :features #{:clj}} reader)
                                    (catch Exception _ nil))]
                      (if (and (seq? form) ('#{ns require use import set! comment} (first form)))
                        (recur (into libs (libs-in form)))
                        libs))))))
            (fn [script own]
              (let [own-jar (when own (jar (url (symbol own))))
                    seen (atom #{})
                    own? (fn [lib] (let [at (url lib)] (or (nil? (jar at)) (= own-jar (jar at)))))
                    known (atom {})
                    clean? (fn clean? [lib]
                             (when-not (contains? @known lib)
                               (swap! known assoc lib true)
                               (swap! known assoc lib
                                      (and (not (own? lib))
                                           (every? (fn [one] (or (nil? (url one)) (clean? one)))
                                                   (some-> (source lib) slurp libs-named)))))
                             (@known lib))
                    walk (fn walk [libs]
                           (vec (mapcat
                                 (fn [lib]
                                   (when-not (or (@seen lib) (> (count @seen) 1000))
                                     (swap! seen conj lib)
                                     (cond
                                       (nil? (url lib)) nil
                                       (not (own? lib)) (when (clean? lib) [lib])
                                       :else (some-> (source lib) slurp libs-named walk))))
                                 libs)))
                    libs (try
                           (walk (cond script (libs-named (slurp script))
                                       own (some-> (source (symbol own)) slurp libs-named)))
                           (catch java.io.IOException _ []))]
                (remove-ns 'hob.ahead)
                libs))
            """;
}
