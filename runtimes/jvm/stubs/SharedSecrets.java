package jdk.internal.access;

/** What the gate uses of the JDK's own. Compiled against, not packed. */
public abstract class SharedSecrets {
    public static native JavaLangAccess getJavaLangAccess();
}
