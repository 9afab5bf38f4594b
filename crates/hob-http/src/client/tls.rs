//! TLS of the client: one configuration for a process, and the roots that the system trusts.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

/// Made at first use. What could not be made is tried again.
static CONNECTOR: OnceCell<TlsConnector> = OnceCell::const_new();

/// Speaks TLS with who answers there as this host; what is wrong, in words.
pub(super) async fn connect(host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let connector = CONNECTOR.get_or_try_init(connector).await?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    connector.connect(name, stream).await.map_err(|error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
        cause.map_or_else(|| error.to_string(), told)
    })
}

async fn connector() -> Result<TlsConnector, String> {
    // Some hundred files may be read.
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = found.map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "no certificate authority is known here{why}: install ca-certificates, or name a file \
             of them in SSL_CERT_FILE"
        ));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// What is wrong, and what to do about it.
fn told(error: &Error) -> String {
    let Error::InvalidCertificate(wrong) = error else {
        return if matches!(error, Error::InvalidMessage(_)) {
            "what answers there speaks no TLS; does the address begin with http://?".to_owned()
        } else {
            error.to_string()
        };
    };
    if matches!(wrong, CertificateError::UnknownIssuer) {
        "its certificate is by no authority that is trusted here: SSL_CERT_FILE may name more"
            .to_owned()
    } else if matches!(
        wrong,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    ) {
        "its certificate is for another name".to_owned()
    } else if matches!(wrong, CertificateError::Expired | CertificateError::ExpiredContext { .. }) {
        "its certificate has expired".to_owned()
    } else if format!("{wrong:?}").contains("CaUsedAsEndEntity") {
        // As `openssl req -x509` makes one that is not told otherwise.
        "its certificate is an authority's (CA:TRUE), not a server's".to_owned()
    } else {
        error.to_string()
    }
}
