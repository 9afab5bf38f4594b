package jdk.internal.access;

/** What the gate uses of the JDK's own. Compiled against, not packed. */
public interface JavaLangAccess {
    void registerShutdownHook(int slot, boolean whileShutDown, Runnable hook);
}
