;; hob run test.clj
(load-file (str (java.io.File. (.getParentFile (.getAbsoluteFile (java.io.File. *file*))) "core.clj")))

(ns PROJECT.test
  (:require [PROJECT.core :as core]
            [clojure.test :refer [deftest is run-tests]]))

(deftest everyone-is-greeted
  (is (= "Hello, world!" (core/greeting [])))
  (is (= "Hello, Ada and Bob!" (core/greeting ["Ada" "Bob"]))))

(let [{:keys [fail error]} (run-tests)]
  (when (pos? (+ fail error))
    (System/exit 1)))
